begin
  Process.kill(:INT, $$); sleep 1
rescue Interrupt => e
  p e.class, e.message
end
Process.kill(:INT, $$); sleep 1
