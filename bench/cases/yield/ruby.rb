# ruby.rb - Ruby's Fiber, resumed in turn by a loop. See workload.hpp.
#
# A yield goes to the loop, which resumes the next one: what is counted is one turn of a fiber.
#
# SPDX-License-Identifier: Apache-2.0

if ARGV.include?("--help")
  puts "ruby.rb - Ruby's Fiber, resumed in turn by a loop. Argument: --quick."
  exit
end
QUICK = ARGV.include?("--quick")

def check(condition, what)
  return if condition
  warn "wrong: #{what}"
  exit 1
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

def row(name, unit, value, at = nil)
  column = at ? %(, "at": "#{at}") : ""
  puts %({"row": "#{name}"#{column}, "unit": "#{unit}", "value": #{value}})
  $stdout.flush
end

def two(yields)
  turns = [0, 0]
  fibers = [0, 1].map do |i|
    Fiber.new do
      yields.times do
        Fiber.yield
        turns[i] += 1
      end
    end
  end
  begun = now
  (yields + 1).times do
    fibers[0].resume
    fibers[1].resume
  end
  took = now - begun
  check(turns.sum == 2 * yields, "two")
  took * 1e9 / (2 * yields)
end

def many(count, inside)
  turns = 0
  begun = now
  fibers = Array.new(count) do
    Fiber.new do
      turns += 1
      Fiber.yield
      turns += 1
    end
  end
  begun = now unless inside
  fibers.each(&:resume)
  fibers.each(&:resume)
  took = now - begun
  check(turns == 2 * count, "many")
  took * 1e3
end

puts %({"about": "Ruby #{RUBY_VERSION}"})
yields = QUICK ? 100 : 1_000_000
two(yields / 10)
row("Ruby, Fiber", "ns", two(yields))
[true, false].each do |inside|
  $stdout.flush
  child = fork do
    at = inside ? "with creation" : "created before"
    count = QUICK ? 100 : 10_000
    row("Ruby, many", "ms", many(count, inside), "cold, #{at}")
    later = Array.new(7) { many(count, inside) }
    row("Ruby, many", "ms", later.sort[3], "warm, #{at}")
  end
  Process.wait(child)
  check($?.success?, "many")
end
