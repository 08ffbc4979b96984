// rust.rs - the ring on async functions with a hand-written executor for one thread. See others.cpp
// and workload.hpp.
//
//     rust N R M D P [--strict]
//     rust --version
//
// It prints how many tasks ended, how many messages were received, and the seconds. D is ignored, P
// must be 1. Wakers are the real ones of core::task, their data a task's number: nothing is counted
// or allocated for them.
//
// SPDX-License-Identifier: Apache-2.0
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::time::Instant;

thread_local! {
    static READY: RefCell<VecDeque<usize>> = RefCell::new(VecDeque::new());
}

fn waker_of(task: usize) -> RawWaker {
    RawWaker::new(task as *const (), &WAKERS)
}

fn push(data: *const ()) {
    READY.with(|ready| ready.borrow_mut().push_back(data as usize));
}

static WAKERS: RawWakerVTable =
    RawWakerVTable::new(|data| waker_of(data as usize), push, push, |_| {});

#[derive(Default)]
struct Gate {
    messages: Cell<u64>,
    waiting: Cell<Option<Waker>>,
}

impl Gate {
    fn wake(&self) {
        self.messages.set(self.messages.get() + 1);
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }
}

struct Pass<'a>(&'a Gate);

impl Future for Pass<'_> {
    type Output = ();
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let messages = self.0.messages.get();
        if messages > 0 {
            self.0.messages.set(messages - 1);
            return Poll::Ready(());
        }
        self.0.waiting.set(Some(context.waker().clone()));
        Poll::Pending
    }
}

#[derive(Default)]
struct Tally {
    ended: Cell<u64>,
    received: Cell<u64>,
}

struct Ring {
    length: usize,
    rounds: u64,
    strict: bool,
}

async fn go_round(ring: &Ring, sum: &Tally, place: usize, mine: &Gate, next: &Gate) {
    if place == 0 {
        Pass(mine).await;
    }
    let last = if ring.strict { 0 } else { ring.length - 1 };
    let mut turn = 0;
    for _ in 0..ring.rounds {
        if turn == place {
            next.wake();
            Pass(mine).await;
        } else {
            Pass(mine).await;
            next.wake();
        }
        turn = if turn == last { 0 } else { turn + 1 };
    }
    sum.ended.set(sum.ended.get() + 1);
    sum.received.set(sum.received.get() + ring.rounds);
}

fn run<F: Future<Output = ()>>(tasks: &mut [Pin<Box<F>>], wakers: &[Waker]) {
    while let Some(task) = READY.with(|ready| ready.borrow_mut().pop_front()) {
        let mut context = Context::from_waker(&wakers[task]);
        let _ = tasks[task].as_mut().poll(&mut context);
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().map(String::as_str) == Some("--help") {
        println!(
            "rust.rs - the ring on async functions with a hand-written executor for \
             one thread. See others.cpp and workload.hpp. Arguments: N R M D P \
             [--strict]."
        );
        return;
    }
    if words.first().map(String::as_str) == Some("--version") {
        println!("{}", option_env!("RUSTC_VERSION").unwrap_or("rustc"));
        return;
    }
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let strict = words.iter().any(|word| word == "--strict");
    if numbers.len() != 5 || numbers[4] != 1 {
        eprintln!("usage: rust N R M D 1 [--strict]");
        std::process::exit(1);
    }
    let length = numbers[0] as usize;
    let cycles = numbers[1] as usize;
    let ring = Ring { length, rounds: numbers[2], strict };
    let gates: Vec<Gate> = (0..length * cycles).map(|_| Gate::default()).collect();
    let sum = Tally::default();
    let mut tasks = Vec::with_capacity(gates.len());
    let mut wakers = Vec::with_capacity(gates.len());
    for cycle in 0..cycles {
        let first = cycle * length;
        for place in (0..length).rev() {
            let next = first + (place + 1) % length;
            wakers.push(unsafe { Waker::from_raw(waker_of(tasks.len())) });
            push(tasks.len() as *const ());
            tasks.push(Box::pin(go_round(&ring, &sum, place, &gates[first + place], &gates[next])));
        }
    }
    run(&mut tasks, &wakers);
    let begun = Instant::now();
    for cycle in 0..cycles {
        gates[cycle * length].wake();
    }
    run(&mut tasks, &wakers);
    let seconds = begun.elapsed().as_secs_f64();
    println!("{} {} {}", sum.ended.get(), sum.received.get(), seconds);
}
