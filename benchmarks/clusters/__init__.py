"""Benchmarks of star clusters with binaries: Allpairs next to PeTar and NBODY6++GPU, with errors summed here."""
