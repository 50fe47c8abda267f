# session - a Ruby that lives on between steps (docs/SESSION-PROTOCOL.md).
#
# A step is evaluated where a file's code is, at the top level: its local variables, methods and
# constants are there for the next.  The value is that of the last expression, as in irb.  Threads
# of earlier steps go on between steps; what they print then is the next step's.
#
# SIGINT raises Interrupt in the step, never in here: it comes only where handle_interrupt lets it.
# What is not Ruby (a long Integer operation, a match of a Regexp) ends first.
#
# In a process that a step forks, the channel is closed; it ends where the step would.
require "json"

module VialSession
  VALUE_MAX = 1 << 20
  CALLS_MAX = 1000
  SHORT_MAX = 1000 # of JSON that has its text beside it
  TEXT_MAX = 1 << 16 # of a message or a traceback
  DEPTH_MAX = 100
  SOURCES_MAX = 64 # steps whose text is kept for tracebacks
  HERE = __FILE__
  OURS = "#{__dir__}/" # what is in the way of tracebacks: us, and what started us

  class CallbackError < StandardError
    def self.name
      "CallbackError"
    end
  end

  # The stream, and the messages in it.
  class Channel
    def initialize(descriptor)
      @io = IO.for_fd(descriptor, "r+b")
      @io.close_on_exec = true
      @io.sync = true
      @unread = String.new
    end

    def close
      @io.close
    end

    def fileno
      @io.fileno
    end

    def send(message)
      @io.write(JSON.generate(message, max_nesting: 0), "\n")
    end

    # An interrupt may come while this waits, but nothing that was read is lost with it.
    def receive
      seen = 0
      until (at = @unread.index("\n", seen))
        seen = @unread.bytesize
        read_more
      end
      JSON.parse(@unread.slice!(0..at).force_encoding(Encoding::UTF_8), max_nesting: 0)
    end

    private

    def read_more
      Thread.handle_interrupt(Object => :immediate) { IO.select([@io]) }
      chunk = @io.read_nonblock(1 << 16, exception: false)
      exit!(0) if chunk.nil? # the server has gone
      @unread << chunk unless chunk == :wait_readable
    rescue Errno::ECONNRESET
      exit!(0)
    end
  end

  # What has been received.  Any thread may wait for something, and one of those that do reads for
  # all.  Nothing but an interrupt of the waiting itself comes in between, so no message is lost.
  class Inbox
    OVER = { "op" => "raise", "type" => "RuntimeError",
             "message" => "the step that made this call is over" }.freeze

    def initialize(channel)
      @channel = channel
      @lock = Mutex.new
      @changed = ConditionVariable.new
      @runs = []
      @answers = {} # number => nil while it is open
      @last = 0
      @is_reading = false
    end

    def next_run
      exclusively do
        wait_until { @runs.any? }
        @runs.shift
      end
    end

    def call(message)
      exclusively do
        number = @last += 1
        @answers[number] = nil
        @channel.send({ **message, call: number })
        wait_until { @answers[number] }
        @answers[number]
      ensure
        @answers.delete(number)
      end
    end

    # What still waits, in threads that the step has left behind, waits in vain.
    def end_calls
      exclusively do
        @answers.transform_values! { |answer| answer || OVER }
        @changed.broadcast
      end
    end

    private

    def exclusively(&work)
      Thread.handle_interrupt(Object => :never) { @lock.synchronize(&work) }
    end

    def wait_until
      until yield
        if @is_reading
          Thread.handle_interrupt(Object => :immediate) { @changed.wait(@lock) }
        else
          take(read)
        end
      end
    end

    def read
      @is_reading = true
      @lock.unlock
      @channel.receive
    ensure
      @lock.lock
      @is_reading = false
      @changed.broadcast
    end

    def take(message)
      if %w[run fork forked].include?(message["op"]) || Rewind::ORDERS.include?(message["op"])
        @runs << message
      elsif @answers.key?(message["call"])
        @answers[message["call"]] = message
      end
    end
  end

  # A step that ends badly is as if it had never been: all of it is done by an object in C, which
  # copies the process.  In the copy that goes on, begin and order return late, and true.
  class Rewind
    ORDERS = %w[rewind undo checkpoint checkpoints restore forget].freeze
    OBJECT = "#{__dir__}/rewind.so"
    INT, NUMBER, TEXT = 4, -6, 1 # Fiddle's names for them

    attr_reader :is_copying

    def initialize
      require "fiddle"
      @lib = Fiddle.dlopen(OBJECT)
      @is_copying = false
      @begin = function("begin", [NUMBER, TEXT])
      @covered = function("is_covered", [])
      @done = function("done", [], TEXT)
      @trim = function("trim", [])
      @order = function("order", [TEXT, NUMBER, TEXT, INT, TEXT])
    end

    def start(descriptor, message)
      start = function("start", [INT, INT, NUMBER])
      copying { start.call(descriptor, message["undo"], message["files"]) }
    end

    # Where the session can be copied from outside: until there is another message.
    def await(descriptor)
      await = function("await", [INT])
      copying { await.call(descriptor) }
    end

    # In a branch: nothing can be gone back to yet.
    def restart
      restart = function("restart", [])
      copying { restart.call }
    end

    def begin(step)
      copying { @begin.call(step, obstacle) } != 0
    end

    def covered?
      @covered.call != 0
    end

    # Why the step cannot be taken back, or nil.
    def done
      why = @done.call
      why.null? ? nil : why.to_s
    end

    def trim
      @trim.call
    end

    def order(message)
      copying do
        @order.call(message["op"], message["id"], message["name"], message.fetch("steps", 1), obstacle)
      end != 0
    end

    private

    def function(name, arguments, result = INT)
      Fiddle::Function.new(@lib["vial_rewind_#{name}"], arguments, result, need_gvl: true)
    end

    def copying
      @is_copying = true
      yield
    ensure
      @is_copying = false
    end

    def obstacle
      "threads are running" if Thread.list.size > 1
    end
  end

  # Values and exceptions as they go over the channel.
  module Say
    module_function

    def value(value, max)
      return {} if NilClass === value # a BasicObject has no nil?

      json = JSON.generate(value, max_nesting: 0) if exact?(value, 0)
      return { value: exact(value, json) } if json && json.bytesize <= max

      text = text_of(value)
      short = cut(text, max / 6) # a character may be \u1234
      said = { value: { text: short, type: class_name(value) } }
      said[:cut] = true if json || short != text
      said
    end

    def exact(value, json)
      said = { json: value, type: class_name(value) }
      json.size > SHORT_MAX ? said : { **said, text: text_of(value) }
    end

    # Whether JSON says exactly this.
    def exact?(value, depth)
      return false if depth > DEPTH_MAX

      case value
      when nil, true, false then true
      when Integer then value.bit_length < 64
      when Float then value.finite?
      when String then value.instance_of?(String) && text?(value)
      when Array then value.instance_of?(Array) && value.all? { |item| exact?(item, depth + 1) }
      when Hash then value.instance_of?(Hash) && exact_hash?(value, depth)
      else false
      end
    end

    def exact_hash?(hash, depth)
      hash.all? { |key, value| key.instance_of?(String) && text?(key) && exact?(value, depth + 1) }
    end

    def text?(string)
      [Encoding::UTF_8, Encoding::US_ASCII].include?(string.encoding) && string.valid_encoding?
    end

    def text_of(value)
      clean(value.inspect)
    rescue StandardError, NotImplementedError
      "#<#{class_name(value)}: cannot be inspected>"
    end

    def clean(text)
      String.new(text.to_s).encode(Encoding::UTF_8, invalid: :replace, undef: :replace).scrub
    rescue EncodingError
      text.to_s.b.force_encoding(Encoding::UTF_8).scrub
    end

    def cut(text, max)
      text.size > max ? "#{text[0, max]}..." : text
    end

    def class_name(value)
      class_of = Kernel.instance_method(:class).bind_call(value)
      Module.instance_method(:name).bind_call(class_of) || class_of.name || "Object"
    rescue TypeError # a BasicObject
      "BasicObject"
    end

    def exception(error, file, sources, depth = 0)
      message = cut(message_of(error), TEXT_MAX)
      lines = backtrace_of(error)
      frames = lines.filter_map { |line| frame(line, sources) }.reverse
      said = { type: error.class.name || "Exception", message:,
               line: line_of(error, message, frames, file), frames: }
      said[:traceback] = cut(traceback(error, message, lines), TEXT_MAX) if depth.zero?
      cause = error.cause
      said[:cause] = exception(cause, file, sources, depth + 1) if cause && depth < 8
      said
    end

    def message_of(error)
      clean(error.message)
    rescue StandardError, NotImplementedError
      ""
    end

    # Without our own, and what is above them.
    def backtrace_of(error)
      lines = (error.backtrace || []).map { |line| clean(line) }
      lines.reject { |line| line.start_with?(OURS, "<internal:") }
    end

    def frame(line, sources)
      file, number, name = line.match(/\A(.*?):(\d+)(?::in [`'](.*)')?\z/m)&.captures
      return unless file

      { file:, line: number.to_i, name: name || "<main>",
        source: sources[file]&.lines&.fetch(number.to_i - 1, nil)&.strip }
    end

    # Ruby begins the text of a SyntaxError with where it is.
    def line_of(error, message, frames, file)
      in_text = message[/\A#{Regexp.escape(file)}:(\d+)/, 1] if error.is_a?(SyntaxError)
      in_text&.to_i || frames.reverse.find { |frame| frame[:file] == file }&.fetch(:line)
    end

    # As Ruby prints it.
    def traceback(error, message, lines)
      first, *rest = message.split("\n")
      text = "#{lines.first}: #{first} (#{error.class.name})"
      text = "#{first} (#{error.class.name})" if lines.empty?
      [text, *rest, *lines.drop(1).map { |line| "\tfrom #{line}" }].join("\n")
    end
  end

  Step = Struct.new(:id, :code, :mode, :name, :globals, :callbacks, :calls_max, :value_max,
                    :check_only, :calls) do
    def self.from(message)
      id = message["id"]
      new(id, message["code"], message.fetch("mode", "cell"), message.fetch("name", "<step #{id}>"),
          message.fetch("globals", {}), message["callbacks"],
          message.fetch("calls_max", CALLS_MAX), message.fetch("value_max", VALUE_MAX),
          message["check_only"], 0)
    end
  end

  # Standard output and error, which each step has as the first one had them.
  class Outputs
    def initialize
      @spares = [[STDOUT, 1, STDOUT.dup], [STDERR, 2, STDERR.dup]]
    end

    def mend
      @spares.each do |stream, descriptor, spare|
        stream.send(:initialize, descriptor, "w") if stream.closed? # its descriptor is not
        stream.reopen(spare)
        stream.sync = true
      end
      $stdout = STDOUT
      $stderr = STDERR
    end

    def flush
      [$stdout, $stderr, STDOUT, STDERR].each do |stream|
        stream.flush
      rescue StandardError # it is closed, or of the program's own making
        next
      end
    end
  end

  class Session
    BUILTIN = ObjectSpace.each_object(Class).select { |type| type <= Exception && type.name }
                         .to_h { |type| [type.name, type] }

    def initialize(descriptor)
      @channel = Channel.new(descriptor)
      @inbox = Inbox.new(@channel)
      @outputs = Outputs.new
      @sources = {}
      @callbacks = []
      @step = nil
      @process = Process.pid
      @is_running = false
      @rewind = nil
    end

    def serve
      close_in_children
      at_exit { end_with($!) }
      trap_interrupts
      @channel.send({ op: "ready" })
      Thread.handle_interrupt(Interrupt => :never) do
        loop { take(@inbox.next_run) }
      end
    end

    def call(name, args, kwargs)
      step = @step
      raise RuntimeError, "#{name} is not to be called here", outside if step.nil? || !ours?
      if (step.calls += 1) > step.calls_max
        raise RuntimeError, "Exceeded max tool calls (#{step.calls_max})", outside
      end

      check_arguments(step, name, [args, kwargs])
      answer = @inbox.call({ op: "call", id: step.id, name:, args:, kwargs: })
      return answer["value"] if answer["op"] == "return"

      type, message = answer.values_at("type", "message")
      raise BUILTIN[type], message, outside if BUILTIN.key?(type) && BUILTIN[type] <= StandardError

      raise CallbackError, "#{type}: #{message}", outside
    end

    def copying?
      @rewind&.is_copying
    end

    private

    def take(message)
      case message["op"]
      when "run" then run(Step.from(message))
      when "fork" then await_fork(message)
      when "forked" then forked(message)
      when "rewind" then begin_rewind(message)
      else go_on if @rewind&.order(message)
      end
    end

    def begin_rewind(message)
      return if @rewind

      @rewind = Rewind.new
      @rewind.start(@channel.fileno, message)
      go_on
    end

    def await_fork(message)
      awaiting = @rewind || Rewind.new
      @channel.send({ op: "result", id: message["id"] })
      awaiting.await(@channel.fileno)
    rescue LoadError # without Fiddle: a branch that starts programs may come to harm
      @channel.send({ op: "result", id: message["id"] })
    end

    # This is a copy that was made from outside; what the others draw is not its own.
    def forked(message)
      @rewind&.restart
      go_on
      srand if message["reseed"]
    end

    # This is another process now.
    def go_on
      @process = Process.pid
    end

    def ours?
      Process.pid == @process
    end

    def outside
      caller.reject { |line| line.start_with?(OURS) }
    end

    def check_arguments(step, name, arguments)
      json = JSON.generate(arguments)
      return if json.bytesize <= step.value_max

      raise ArgumentError, "arguments of #{name} are larger than #{step.value_max} bytes", outside
    end

    def close_in_children
      channel, session = @channel, self
      Process.singleton_class.prepend(Module.new do
        define_method(:_fork) do
          process = super()
          if process.zero? && !session.copying?
            channel.close
            Signal.trap("INT", "DEFAULT")
          end
          process
        end
      end)
    end

    def run(step)
      return go_on if @rewind&.begin(step.id)

      @step = step
      prepare(step)
      said = evaluate(step)
      end_fork(said) unless ours?
      @outputs.flush
      @step = nil
      @inbox.end_calls
      why = @rewind&.done
      said[:rewind] = why if why
      @channel.send({ op: "result", id: step.id, **said })
      @rewind&.trim
    end

    # A process that a step has forked, and that came to the step's end: as it would end a program.
    def end_fork(said)
      $stderr.puts(said[:exception][:traceback]) if said[:exception]
      Kernel.exit(!said[:exception])
    end

    def prepare(step)
      @outputs.mend
      trap_interrupts # a step may have trapped them
      $0 = step.name
      @sources.delete(step.name)
      @sources[step.name] = step.code
      @sources.shift if @sources.size > SOURCES_MAX
      set_callbacks(step.callbacks) if step.callbacks
    end

    def trap_interrupts
      Signal.trap("INT") { Thread.main.raise(Interrupt, "") if @is_running && ours? }
    end

    def set_callbacks(names)
      @callbacks.each do |name|
        Object.remove_method(name) if Object.private_method_defined?(name, false)
      end
      @callbacks = names.map { |item| item.is_a?(Hash) ? item["name"] : item }
      session = self
      @callbacks.each do |name|
        Object.define_method(name) { |*args, **kwargs| session.call(name, args, kwargs) }
        Object.send(:private, name)
      end
    end

    # What the result is to say.
    def evaluate(step)
      @is_running = true
      begin
        Thread.handle_interrupt(Interrupt => :immediate) do
          value = value_of(step)
          step.mode == "script" ? {} : Say.value(value, step.value_max)
        end
      ensure
        @is_running = false
        forget_interrupts
      end
    rescue Interrupt => error
      { interrupted: true, exception: Say.exception(error, step.name, @sources) }
    rescue SystemExit, SignalException
      raise
    rescue Exception => error # rubocop:disable Lint/RescueException -- all that a step may raise
      { exception: Say.exception(error, step.name, @sources) }
    end

    # One that came when the step was already over.
    def forget_interrupts
      Thread.handle_interrupt(Interrupt => :immediate) { Thread.pass }
    rescue Interrupt
      nil
    end

    def value_of(step)
      step.globals.each { |name, value| TOPLEVEL_BINDING.local_variable_set(name, value) }
      if step.check_only
        RubyVM::InstructionSequence.compile(step.code, step.name)
        return
      end
      step.mode == "function" ? call_body(step) : eval_step(step.code, step)
    end

    def eval_step(code, step)
      Kernel.eval(code, TOPLEVEL_BINDING, step.name, 1) # the program may have an eval of its own
    end

    # The step as a body that can return; its local variables are made outside of it, and stay.
    def call_body(step)
      names = RubyVM::AbstractSyntaxTree.parse(step.code).children.first.grep(/\A[a-z_]\w*\z/)
      (names - TOPLEVEL_BINDING.local_variables).each do |name|
        TOPLEVEL_BINDING.local_variable_set(name, nil)
      end
      value = eval_step("-> do #{step.code}\nnil\nend.call", step)
      return value unless NilClass === value && names.include?(:result)

      TOPLEVEL_BINDING.local_variable_get(:result)
    rescue SyntaxError
      eval_step(step.code, step) # which says it with the right name
    end

    # Of the interpreter: all that the program wanted to do at its exit is done.
    def end_with(error)
      return unless @step && ours?
      return unless error.nil? || error.is_a?(SystemExit)

      @outputs.flush
      return if @rewind&.covered? # whoever takes over tells of it

      @channel.send({ op: "result", id: @step.id, exit_code: error ? error.status : 0 })
    end
  end

  def self.serve
    descriptor = Integer(ENV.delete("VIAL_SESSION_FD"))
    $LOADED_FEATURES.delete(HERE)
    Object.send(:remove_const, :VialSession)
    Session.new(descriptor).serve
  end
end

VialSession.serve
