"""Several searches at once: processes, Dask clusters, and engines that give first guesses."""
