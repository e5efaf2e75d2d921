"""Takes out one safety rule after the other and shows which tests notice; run by hand."""
