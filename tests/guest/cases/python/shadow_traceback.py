raise ValueError(1)
