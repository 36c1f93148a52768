"""What differs between encoders: one frozen record of each, built by its family, which everything else asks."""
