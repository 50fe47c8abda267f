import warnings; print(warnings.mine)
