if ((!__vial_status)); then builtin eval "$__vial_code"; else __vial_last || builtin eval "$__vial_code"; fi
