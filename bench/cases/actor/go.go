// go.go - counters with a sync.Mutex, called by goroutines. See workload.hpp.
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

type counter struct {
	mutex sync.Mutex
	value int
	_     [48]byte
}

func (c *counter) call() {
	c.mutex.Lock()
	c.value++
	c.mutex.Unlock()
}

var quick = false

func play(goroutines, actors, each int) (int, time.Duration) {
	all := make([]counter, actors)
	var done sync.WaitGroup
	done.Add(goroutines)
	begun := time.Now()
	for i := 0; i < goroutines; i++ {
		go func(mine *counter) {
			for n := 0; n < each; n++ {
				mine.call()
			}
			done.Done()
		}(&all[i%actors])
	}
	done.Wait()
	took := time.Since(begun)
	sum := 0
	for i := range all {
		sum += all[i].value
	}
	return sum, took
}

func measure(row string, processors, goroutines, actors, total int) {
	runtime.GOMAXPROCS(processors)
	each := total / goroutines
	if quick {
		each = 100
	}
	play(goroutines, actors, each/10+1)
	sum, took := play(goroutines, actors, each)
	if sum != goroutines*each {
		fmt.Fprintln(os.Stderr, "wrong:", row)
		os.Exit(1)
	}
	fmt.Printf("{\"row\": \"%s\", \"unit\": \"ns\", \"value\": %g}\n", row,
		float64(took.Nanoseconds())/float64(sum))
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--help" {
		fmt.Println("go.go - counters with a sync.Mutex, called by goroutines. See workload.hpp. " +
			"The only argument is --quick.")
		return
	}
	quick = len(os.Args) > 1 && os.Args[1] == "--quick"
	fmt.Printf("{\"about\": \"%s\"}\n", runtime.Version())
	measure("Go, 1 pair", 1, 1, 1, 20000000)
	measure("Go, 2,048 pairs", 2, 2048, 2048, 20000000)
	measure("Go, 2 callers", 2, 2, 1, 4000000)
	measure("Go, 64 callers", 2, 64, 1, 4000000)
	measure("Go, 1,024 callers", 2, 1024, 1, 4000000)
}
