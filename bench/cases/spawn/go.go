// go.go - a million goroutines that do next to nothing, with GOMAXPROCS=1. See workload.hpp.
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

func play(count, outstanding int) float64 {
	ran := 0
	begun := time.Now()
	for left := count; left > 0; left -= outstanding {
		var done sync.WaitGroup
		done.Add(outstanding)
		for i := 0; i < outstanding; i++ {
			go func() {
				ran++ // one thread, and nothing is preempted within so short a time
				done.Done()
			}()
		}
		done.Wait()
	}
	took := time.Since(begun)
	if ran != count {
		fmt.Fprintln(os.Stderr, "wrong: goroutines that ran")
		os.Exit(1)
	}
	return float64(took.Nanoseconds()) / float64(count)
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--help" {
		fmt.Println("go.go - a million goroutines that do next to nothing, with " +
			"GOMAXPROCS=1. See workload.hpp. Argument: --quick.")
		return
	}
	runtime.GOMAXPROCS(1)
	count := 1000000
	if len(os.Args) > 1 && os.Args[1] == "--quick" {
		count = 10000
	}
	count = count / batch * batch
	row := func(name string, value float64) {
		fmt.Printf("{\"row\": \"%s\", \"unit\": \"ns\", \"value\": %g}\n", name, value)
	}
	fmt.Printf("{\"about\": \"%s\"}\n", runtime.Version())
	row("Go, a million at once", play(count, count))
	play(count, batch)
	row("Go", play(count, batch))
}
