// go.go - the case `pool` on goroutines. See workload.hpp. The gate of a ring is a channel with a
// buffer, so that wakes are counted.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

const batch = 1024
const length = 8

func require(condition bool, what string) {
	if !condition {
		fmt.Fprintln(os.Stderr, "wrong:", what)
		os.Exit(1)
	}
}

func yields(fibers, total int) float64 {
	each := total / fibers
	var done sync.WaitGroup
	done.Add(fibers)
	begun := time.Now()
	for i := 0; i < fibers; i++ {
		go func() {
			for n := 0; n < each; n++ {
				runtime.Gosched()
			}
			done.Done()
		}()
	}
	done.Wait()
	return float64(time.Since(begun).Nanoseconds()) / float64(each*fibers)
}

func spawn(total int) float64 {
	begun := time.Now()
	for left := total; left > 0; left -= batch {
		var done sync.WaitGroup
		done.Add(batch)
		for i := 0; i < batch; i++ {
			go func() { done.Done() }()
		}
		done.Wait()
	}
	return float64(time.Since(begun).Nanoseconds()) / float64(total)
}

func tree(first, size int) int {
	if size == 1 {
		return first
	}
	var parts [10]int
	var done sync.WaitGroup
	done.Add(10)
	for i := 0; i < 10; i++ {
		go func(i int) {
			parts[i] = tree(first+i*(size/10), size/10)
			done.Done()
		}(i)
	}
	done.Wait()
	sum := 0
	for _, part := range parts {
		sum += part
	}
	return sum
}

func skynet(size int) float64 {
	begun := time.Now()
	require(tree(0, size) == size*(size-1)/2, "the sum of the tree")
	return float64(time.Since(begun).Nanoseconds()) / 1e6
}

func goRound(mine, next chan struct{}, place, rounds int) {
	turn := 0
	for round := 0; round < rounds; round++ {
		if turn == place {
			next <- struct{}{}
			<-mine
		} else {
			<-mine
			next <- struct{}{}
		}
		turn++
		if turn == length {
			turn = 0
		}
	}
}

func messages(cycles, rounds int) float64 {
	gates := make([]chan struct{}, length*cycles)
	for i := range gates {
		gates[i] = make(chan struct{}, 1)
	}
	var ready, done sync.WaitGroup
	ready.Add(len(gates))
	done.Add(len(gates))
	for i := range gates {
		go func(i int) {
			place := i % length
			mine, next := gates[i], gates[i-place+(place+1)%length]
			ready.Done()
			if place == 0 {
				<-mine
			}
			goRound(mine, next, place, rounds)
			done.Done()
		}(i)
	}
	ready.Wait()
	begun := time.Now()
	for cycle := 0; cycle < cycles; cycle++ {
		gates[cycle*length] <- struct{}{}
	}
	done.Wait()
	return float64(len(gates)*rounds) / float64(time.Since(begun).Nanoseconds()) * 1e3
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--help" {
		fmt.Println("go.go - the case `pool` on goroutines. See workload.hpp. The gate of a " +
			"ring is a channel with a buffer, so that wakes are counted. Argument: " +
			"--quick.")
		return
	}
	quick := len(os.Args) > 1 && os.Args[1] == "--quick"
	turns, fibers, leaves, rounds := 3000000, 976*batch, 1000000, 100000
	if quick {
		turns, fibers, leaves, rounds = 10000, batch, 1000, 10
	}
	fmt.Printf("{\"about\": \"%s\"}\n", runtime.Version())
	for p := 1; p <= 2; p++ {
		runtime.GOMAXPROCS(p)
		row := func(name, unit string, value float64) {
			fmt.Printf("{\"row\": \"Go, %s\", \"at\": \"P = %d\", \"unit\": \"%s\", \"value\": %g}\n",
				name, p, unit, value)
		}
		row("1,000 yield", "ns", yields(1000, turns))
		row("16 yield", "ns", yields(16, turns))
		spawn(fibers)
		row("spawn", "ns", spawn(fibers))
		skynet(leaves)
		row("skynet", "ms", skynet(leaves))
		row("ring, 16 fibers", "M/s", messages(2, rounds))
		row("ring, 8,000 fibers", "M/s", messages(1000, rounds/500+1))
	}
}
