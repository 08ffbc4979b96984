// go.go - Go's locks. See workload.hpp; what is on one thread there has GOMAXPROCS=1 here, what is
// on two has 2. Semaphores are channels of one place, as is the custom.
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

const writeEvery = 16

var quick = false

func require(condition bool, what string) {
	if !condition {
		fmt.Fprintln(os.Stderr, "wrong:", what)
		os.Exit(1)
	}
}

// play(count of each, number of goroutines) tells how much was done, and how long it took.
func measure(row string, goroutines, total int, play func(each, goroutines int) (int, time.Duration)) {
	if quick {
		total = goroutines * 100
	}
	play(total/10/goroutines+1, goroutines)
	each := total / goroutines
	done, took := play(each, goroutines)
	require(done == each*goroutines, row)
	fmt.Printf("{\"row\": \"%s\", \"unit\": \"ns\", \"value\": %g}\n", row,
		float64(took.Nanoseconds())/float64(done))
}

func alone(each, _ int) (int, time.Duration) {
	var m sync.Mutex
	done := 0
	begun := time.Now()
	for n := 0; n < each; n++ {
		m.Lock()
		done++
		m.Unlock()
	}
	return done, time.Since(begun)
}

func together(goroutines int, body func(i int)) time.Duration {
	var all sync.WaitGroup
	all.Add(goroutines)
	begun := time.Now()
	for i := 0; i < goroutines; i++ {
		go func(i int) {
			body(i)
			all.Done()
		}(i)
	}
	all.Wait()
	return time.Since(begun)
}

func contend(each, goroutines int) (int, time.Duration) {
	var m sync.Mutex
	done := 0
	took := together(goroutines, func(int) {
		for n := 0; n < each; n++ {
			m.Lock()
			done++
			m.Unlock()
		}
	})
	return done, took
}

func turnsByCondition(each, _ int) (int, time.Duration) {
	var m sync.Mutex
	changed := [2]*sync.Cond{sync.NewCond(&m), sync.NewCond(&m)}
	turn, done := 0, 0
	took := together(2, func(me int) {
		for n := 0; n < each; n++ {
			m.Lock()
			for turn != me {
				changed[me].Wait()
			}
			turn = 1 - me
			done++
			changed[1-me].Signal()
			m.Unlock()
		}
	})
	return done, took
}

func turnsBySemaphores(each, _ int) (int, time.Duration) {
	permits := [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
	permits[0] <- struct{}{}
	done := 0
	took := together(2, func(me int) {
		for n := 0; n < each; n++ {
			<-permits[me]
			done++
			permits[1-me] <- struct{}{}
		}
	})
	return done, took
}

func readAndWrite(each, goroutines int) (int, time.Duration) {
	var m sync.RWMutex
	var counting sync.Mutex
	written, read := 0, 0
	took := together(goroutines, func(int) {
		mine := 0
		for n := each; n != 0; n-- {
			if n%writeEvery == 0 {
				m.Lock()
				written++
				m.Unlock()
			} else {
				m.RLock()
				mine++
				m.RUnlock()
			}
		}
		counting.Lock()
		read += mine
		counting.Unlock()
	})
	return written + read, took
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--help" {
		fmt.Println("go.go - Go's locks. See workload.hpp; what is on one thread there has " +
			"GOMAXPROCS=1 here, what is on two has 2. Semaphores are channels of " +
			"one place, as is the custom. Argument: --quick.")
		return
	}
	for _, word := range os.Args[1:] {
		quick = quick || word == "--quick"
	}
	fmt.Printf("{\"about\": \"%s\"}\n", runtime.Version())
	runtime.GOMAXPROCS(1)
	measure("Go, Mutex", 1, 20000000, alone)
	measure("Go, Cond", 2, 1000000, turnsByCondition)
	measure("Go, channel of 1 as semaphore", 2, 1000000, turnsBySemaphores)
	runtime.GOMAXPROCS(2)
	measure("Go, Mutex, 2 goroutines", 2, 4000000, contend)
	measure("Go, Mutex, 64 goroutines", 64, 4000000, contend)
	measure("Go, RWMutex, 8 goroutines", 8, 2000000, readAndWrite)
}
