#!/usr/bin/env python3
"""weft-gdb.py - fibers in gdb, live and from a core file.

    (gdb) source tools/weft-gdb.py    installed: PREFIX/share/weft/weft-gdb.py
    (gdb) weft fibers                 who there is, what each waits for, where it was started
    (gdb) weft fibers --backtrace     with the stack of each that is not running
    (gdb) weft core FILE              generate-core-file, with the stacks of fibers

It lists what weft::dump() does: every fiber that was started and has not ended. Needed
is the debug information of the library; nothing is called in the program and nothing is written.

How a parked stack is walked: a fiber of kind own has kept stack pointer, frame pointer and resume
address in its block (own_fiber::where), one of kind ucontext has a ucontext_t. An unwinder of ours
is put before gdb's for a moment. It says of the innermost frame of the selected thread that these
are its caller's registers; from there on gdb goes up the fiber's stack by itself. No register is
written, so a core file will do.

Which core files: one that the kernel writes has the stacks. gdb's own generate-core-file reads a
megabyte at a time and gives a mapping up at the first page that it cannot read; a guard between two
stacks is such a page (MADV_GUARD_INSTALL, Linux 6.13). So `weft core` reads those stacks page by
page and writes them into gdb's file.

SPDX-License-Identifier: Apache-2.0
"""
import struct
import sys

try:
    import gdb
    import gdb.unwinder
except ImportError:  # it was not gdb that started this
    print(__doc__.split("SPDX")[0].strip())
    sys.exit(0)

NAMESPACE = "weft::v0::detail::"
KINDS = {1: "own", 2: "ucontext", 3: "thread", 4: "swapped"}
CANCELLED = 1  # fiber_block::attention
# Stack pointer, resume address, frame pointer, and what a switch in a user's frame keeps besides.
REGISTERS = {"i386:x86-64": ("rsp", "rip", "rbp", "rbx", "r12", "r13"),
             "aarch64": ("sp", "pc", "x29")}
# Where swapcontext keeps what it keeps, in uc_mcontext.gregs.
UCONTEXT = {"i386:x86-64": {"rsp": 15, "rip": 16, "rbp": 10, "rbx": 11, "r12": 4, "r13": 5,
                            "r14": 6, "r15": 7}}


def architecture():
    return gdb.selected_inferior().architecture().name()


def type_of(name):
    try:
        return gdb.lookup_type(NAMESPACE + name)
    except gdb.error:
        raise gdb.GdbError("weft: the library has no debug information (no type " + name + ")")


def load(atomic):
    """The value of a std::atomic of libstdc++."""
    for path in (("_M_b", "_M_p"), ("_M_base", "_M_i"), ("_M_i",)):
        value = atomic
        try:
            for member in path:
                value = value[member]
            return value
        except gdb.error:
            continue
    raise gdb.GdbError("weft: a std::atomic that this script does not know")


class Fiber:
    """One control block: fiber_block of src/fiber/fiber_block.hpp."""

    def __init__(self, pointer):
        self.pointer = pointer
        self.block = pointer.dereference()

    @property
    def address(self):
        return int(self.pointer)

    def name(self):
        activity = self.block.cast(type_of("activity"))
        return activity["name"].string(errors="replace") or "(no name)"

    def kind_byte(self):
        """The stack_kind, and whether it has started (started_bit in src/fiber/fiber_block.hpp)."""
        return int(self.block.cast(gdb.lookup_type("weft::v0::runnable"))["kind"])

    def kind(self):
        return KINDS.get(self.kind_byte() & 0x3f, "?")

    def started(self):
        return self.kind_byte() & 0x80 != 0

    def site(self):
        """Where it was started, or None: not every `fiber` knows it."""
        where = self.block["site"]["_M_impl"]
        if int(where) == 0:
            return None
        return "%s:%d" % (where["_M_file_name"].string(), int(where["_M_line"]))

    def reason(self):
        """What it waits for, or None."""
        reason = load(self.block["reason"])
        # One with the lowest bit counts only while the word of the wait says that it waits.
        if int(reason) & 1:
            if int(load(self.block["state"]["word_"])) & 7 not in (1, 2, 6, 7):
                return None
            reason = gdb.Value(int(reason) - 1).cast(reason.type)
        return reason["text"].string() if int(reason) != 0 else None

    def is_cancelled(self):
        return int(load(self.block["attention"])) & CANCELLED != 0

    def runs_on_its_thread(self):
        """Whether it runs on a thread of its own, as its worker says."""
        if self.kind() != "thread":
            return False
        worker = self.pointer.cast(type_of("thread_fiber").pointer())["on"]
        try:
            return int(worker) != 0 and int(worker["current"]) == self.address
        except gdb.MemoryError:
            return False

    def registers(self):
        """The registers that were saved when it left, by their names; None: there are none."""
        if self.kind() not in ("own", "ucontext") or not self.started():
            return None
        where = self.pointer.cast(type_of(self.kind() + "_fiber").pointer())["where"]
        # A build with the portable switch has ucontext for both kinds.
        try:
            saved = where["saved_"]
        except gdb.error:
            return self.saved_by_switch(where)
        return self.saved_by_swapcontext(saved)

    def saved_by_switch(self, where):
        names = REGISTERS.get(architecture())
        if names is None:
            return None
        # gdb looks up a caller one byte before its resume address, to be inside the call. Here that
        # would be inside the switch, where frames are undescribed on purpose (switch_x86_64.hpp).
        saved = where["registers_"]
        values = [int(saved["stack_pointer"]), int(saved["resume_address"]) + 1,
                  int(saved["frame_pointer"])]
        try:  # of a switch in a user's frame, if the build has such (swap_in_frame.hpp)
            values += [int(word) for word in (saved["rbx"], where["kept"][0], where["kept"][1])]
        except gdb.error:
            pass
        return dict(zip(names, values))

    def saved_by_swapcontext(self, saved):
        places = UCONTEXT.get(architecture())
        if places is None or int(saved) == 0:
            return None
        place = saved.cast(type_of("portable_place").pointer())
        kept = place["context"]["uc_mcontext"]["gregs"]
        word = (1 << 64) - 1
        return {name: int(kept[place]) & word for name, place in places.items()}


def all_fibers():
    """The eldest of each executor first, as weft::dump() has them."""
    symbol = gdb.lookup_global_symbol("weft_v0_fiber_lists")
    if symbol is None:
        symbol = gdb.lookup_static_symbol("weft_v0_fiber_lists")
    if symbol is None:
        raise gdb.GdbError("weft: this program has no fibers, or no debug information of weft")
    fibers = []
    listed = set()
    fiber_list = symbol.value()
    while int(fiber_list) != 0:
        mine = []
        block = fiber_list["first_"]
        while int(block) != 0:
            mine.append(Fiber(block))
            listed.add(int(block))
            block = block["listed_next"]
        fibers += reversed(mine)
        fiber_list = fiber_list["next_list_"]
    return fibers + [Fiber(block) for block in found_blocks() if int(block) not in listed]


def found_blocks():
    """Those of the memory for control blocks that are fibers: see src/fiber/fiber_census.hpp."""
    symbol = gdb.lookup_global_symbol("weft_v0_block_chunks")
    ended = gdb.lookup_symbol(NAMESPACE + "no_fiber")[0]
    if symbol is None or ended is None:
        return
    ended = int(ended.value().address)
    block_type = type_of("fiber_block")
    smallest = type_of("own_fiber").sizeof
    front = type_of("fiber_front")  # what a block begins with
    at = next(f.bitpos // 8 for f in front.fields() if f.name == "reason")
    chunk = load(symbol.value())
    while int(chunk) != 0:
        size, memory = int(chunk["block_size"]), int(chunk["memory"])
        if size >= smallest:
            content = gdb.selected_inferior().read_memory(memory, size * int(chunk["blocks"]))
            for offset in range(0, len(content), size):
                if struct.unpack_from("<Q", content, offset + at)[0] != ended:
                    yield gdb.Value(memory + offset).cast(block_type.pointer())
        chunk = chunk["next"]


def running_addresses():
    """The blocks that the threads say they run. Empty if thread_locals cannot be read."""
    found = set()
    selected = gdb.selected_thread()
    for thread in gdb.selected_inferior().threads():
        try:
            thread.switch()
            worker = gdb.parse_and_eval("weft_v0_thread_block")["fibers"]
            if int(worker) != 0:
                found.add(int(worker["current"]))
        except gdb.error:
            continue
    if selected is not None:
        selected.switch()
    return found


class FrameId:
    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


class Detour(gdb.unwinder.Unwinder):
    """From the innermost frame of the selected thread straight to a parked stack."""

    def __init__(self):
        super().__init__("weft")
        self.enabled = False

    def __call__(self, pending):
        here = (int(pending.read_register(self.sp)), int(pending.read_register(self.pc)))
        if here != self.innermost:
            return None
        word = gdb.lookup_type("unsigned long")
        # Below the parked stack, so that gdb sees a stack that grows the right way.
        info = pending.create_unwind_info(
            FrameId(gdb.Value(self.saved[self.sp] - 16).cast(word), gdb.Value(here[1]).cast(word)))
        for name, value in self.saved.items():
            info.add_saved_register(name, gdb.Value(value).cast(word))
        return info

    def backtrace(self, saved):
        """Lines of gdb's own backtrace, numbered from 0."""
        newest = gdb.newest_frame()
        self.sp, self.pc = REGISTERS[architecture()][:2]
        self.saved = saved
        self.innermost = (int(newest.read_register(self.sp)), int(newest.read_register(self.pc)))
        self.enabled = True
        gdb.invalidate_cached_frames()
        try:
            return self.walk()
        finally:
            self.enabled = False
            gdb.invalidate_cached_frames()

    def walk(self):
        before = 0
        frame = gdb.newest_frame()
        while frame is not None and int(frame.read_register(self.sp)) != self.saved[self.sp]:
            before += 1
            frame = frame.older()
        if frame is None:
            return ["(the stack cannot be read)"]
        frame.select()
        lines = []
        for line in gdb.execute("backtrace", to_string=True).splitlines():
            number, _, rest = line.partition(" ")
            if not number.startswith("#"):
                lines.append(line)  # the continuation of a frame
            elif int(number[1:]) >= before:
                lines.append("#%-3d%s" % (int(number[1:]) - before, rest.strip()))
            else:
                lines.clear()
        return lines


detour = Detour()
gdb.unwinder.register_unwinder(None, detour, replace=True)


class Weft(gdb.Command):
    """Looks into a program that uses weft: `weft fibers`."""

    def __init__(self):
        super().__init__("weft", gdb.COMMAND_STATUS, prefix=True)


class Fibers(gdb.Command):
    """Lists the fibers that have not ended: weft fibers [--backtrace]

One line each: name, kind, state, what it waits for, where it was started. With --backtrace also the
stack of each that is not running and has one of its own (kinds own and ucontext)."""

    def __init__(self):
        super().__init__("weft fibers", gdb.COMMAND_STATUS)

    def complete(self, text, word):
        return ["--backtrace"]

    def invoke(self, argument, from_tty):
        arguments = gdb.string_to_argv(argument)
        if arguments not in ([], ["--backtrace"]):
            raise gdb.GdbError("weft fibers [--backtrace]")
        selected_frame = gdb.selected_frame() if gdb.selected_thread() else None
        level = selected_frame.level() if selected_frame is not None else 0
        fibers = all_fibers()
        running = running_addresses()
        for fiber in fibers:
            runs = fiber.address in running or fiber.runs_on_its_thread()
            self.show(fiber, runs)
            if arguments:
                self.show_backtrace(fiber, runs)
        gdb.write("%d fiber%s\n" % (len(fibers), "" if len(fibers) == 1 else "s"))
        if level > 0:
            gdb.execute("frame %d" % level, to_string=True)

    def show(self, fiber, runs):
        idle = "ready" if fiber.started() else "has not started"
        state = "running" if runs else fiber.reason() or idle
        if fiber.is_cancelled():
            state += " (asked to stop)"
        site = fiber.site()
        gdb.write("fiber %s, %s, at 0x%x: %s%s\n"
                  % (fiber.name(), fiber.kind(), fiber.address, state,
                     ", started at " + site if site else ""))

    def show_backtrace(self, fiber, runs):
        if runs:
            gdb.write("    (its stack is that of the thread that runs it)\n")
            return
        if not fiber.started():
            gdb.write("    (it has no stack yet)\n")
            return
        saved = fiber.registers()
        if saved is None:
            why = {"thread": "it has a thread of its own: see `thread apply all backtrace`",
                   "swapped": "its stack is copied away"}.get(fiber.kind(), "not on this machine")
            gdb.write("    (no backtrace: %s)\n" % why)
            return
        for line in detour.backtrace(saved):
            gdb.write("    " + line + "\n")


PAGE = 4096
MOST = 64 << 20  # bytes of one stack


def segments(core):
    """(address, size, offset in the file) of what an ELF core file says it holds."""
    header = core.read(64)
    if header[:5] != b"\x7fELF\x02":
        raise gdb.GdbError("weft: not an ELF core file of 64 bits")
    table, sections = struct.unpack_from("<QQ", header, 0x20)
    entry_size, count = struct.unpack_from("<HH", header, 0x36)
    if count == 0xffff:  # PN_XNUM: too many, the number is in the first section's header
        core.seek(sections + 44)
        count = struct.unpack("<I", core.read(4))[0]
    core.seek(table)
    entries = core.read(entry_size * count)
    for i in range(count):
        kind, _, offset, address, _, size = struct.unpack_from("<IIQQQQ", entries, i * entry_size)
        if kind == 1:  # PT_LOAD
            yield address, size, offset


def stack_pointers():
    """Of all threads and of all fibers that are not running."""
    sp = REGISTERS[architecture()][0]
    pointers = [saved[sp] for saved in (fiber.registers() for fiber in all_fibers()) if saved]
    selected = gdb.selected_thread()
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        pointers.append(int(gdb.parse_and_eval("$sp")))
    selected.switch()
    return pointers


def fill_in(core, pointers):
    """Writes what lies from each pointer up to the next page that cannot be read."""
    loads = sorted(segments(core))
    inferior = gdb.selected_inferior()
    for pointer in pointers:
        first = (pointer - 256) // PAGE * PAGE  # red zone included
        for address, size, offset in loads:
            if not address <= pointer < address + size:
                continue
            for page in range(max(first, address), min(first + MOST, address + size), PAGE):
                try:
                    content = inferior.read_memory(page, PAGE).tobytes()
                except gdb.MemoryError:
                    if page > pointer:
                        break
                    continue
                if content.strip(b"\0"):  # else it stays a hole in the file
                    core.seek(offset + page - address)
                    core.write(content)


class Core(gdb.Command):
    """Writes a core file with the stacks of fibers in it: weft core FILE

Like generate-core-file, which leaves out stacks between guard pages."""

    def __init__(self):
        super().__init__("weft core", gdb.COMMAND_SUPPORT, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, from_tty):
        arguments = gdb.string_to_argv(argument)
        if len(arguments) != 1:
            raise gdb.GdbError("weft core FILE")
        gdb.execute("generate-core-file " + arguments[0])
        with open(arguments[0], "r+b") as core:
            fill_in(core, stack_pointers())


Weft()
Fibers()
Core()
