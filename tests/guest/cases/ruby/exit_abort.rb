abort 'a reason'
