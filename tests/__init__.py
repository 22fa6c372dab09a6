"""The tests; a package, so that benchmarks can use its servers."""
