// go.go - the ring on goroutines: a channel is the gate. See others.cpp and workload.hpp.
//
//	go N R M D P BUFFER [--strict]
//	go --version
//
// It prints how many goroutines ended, how many messages were received, and the seconds. D is
// ignored.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

type ring struct {
	length, rounds int
	strict         bool
	ready, done    sync.WaitGroup
	mutex          sync.Mutex
	ended          int
	received       int
}

func (r *ring) goRound(place int, mine, next chan struct{}) {
	r.ready.Done()
	if place == 0 {
		<-mine
	}
	last := r.length - 1
	if r.strict {
		last = 0
	}
	turn := 0
	received := 0
	for round := 0; round < r.rounds; round++ {
		if turn == place {
			next <- struct{}{}
			<-mine
		} else {
			<-mine
			next <- struct{}{}
		}
		received++
		if turn == last {
			turn = 0
		} else {
			turn++
		}
	}
	r.mutex.Lock()
	r.ended++
	r.received += received
	r.mutex.Unlock()
	r.done.Done()
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--help" {
		fmt.Println("go.go - the ring on goroutines: a channel is the gate. See others.cpp " +
			"and workload.hpp. Arguments: N R M D P BUFFER [--strict].")
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "--version" {
		fmt.Println(runtime.Version())
		return
	}
	var numbers []int
	var r ring
	for _, word := range os.Args[1:] {
		if word == "--strict" {
			r.strict = true
			continue
		}
		number, err := strconv.Atoi(word)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		numbers = append(numbers, number)
	}
	if len(numbers) != 6 {
		fmt.Fprintln(os.Stderr, "usage: go N R M D P BUFFER [--strict]")
		os.Exit(1)
	}
	cycles := numbers[1]
	r.length, r.rounds = numbers[0], numbers[2]
	runtime.GOMAXPROCS(numbers[4])

	gates := make([]chan struct{}, r.length*cycles)
	for i := range gates {
		gates[i] = make(chan struct{}, numbers[5])
	}
	r.ready.Add(len(gates))
	r.done.Add(len(gates))
	for cycle := 0; cycle < cycles; cycle++ {
		first := cycle * r.length
		for place := r.length - 1; place >= 0; place-- {
			go r.goRound(place, gates[first+place], gates[first+(place+1)%r.length])
		}
	}
	r.ready.Wait()
	runtime.GC()
	begun := time.Now()
	for cycle := 0; cycle < cycles; cycle++ {
		gates[cycle*r.length] <- struct{}{}
	}
	r.done.Wait()
	fmt.Println(r.ended, r.received, time.Since(begun).Seconds())
}
