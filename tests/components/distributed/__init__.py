"""Ray as it is: clusters of this machine, whose workers run the tiny BERT."""
