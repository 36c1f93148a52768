"""bertviz's head, model and neuron views as one page that needs no network."""
