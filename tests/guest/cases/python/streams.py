import sys
for s in sys.stdin, sys.stdout, sys.stderr:
    print(s.name, s.mode, s.encoding, s.errors, s.newlines, s.line_buffering, s.write_through, s.isatty(),
          s.fileno(), s.seekable(), s.readable(), s.writable(), s.closed, type(s.buffer), s.buffer.name,
          s.buffer.mode, getattr(s.buffer, 'raw', None), s._CHUNK_SIZE)
    for f in s.tell, s.buffer.tell:
        try:
            print(f())
        except Exception as e:
            print(type(e), e)
print(sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__)
print(len(sys.stdin.buffer.peek()) , sys.stdin.buffer.read1(10))
