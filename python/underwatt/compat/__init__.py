"""Other packages' interfaces, on the top of Underwatt."""
