"""The tests. This is a package so that benchmarks can use its servers."""
