p $0, __FILE__, __dir__, __method__, $PROGRAM_NAME, Process.argv0, __FILE__ == $0
p self, self.class, local_variables, binding.local_variables
p global_variables.grep(/vial|boot/)
