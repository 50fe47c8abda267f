__vial_last; builtin eval "$__vial_code"
