"""The PEP 249 layer over the drivers and over Hrana."""
