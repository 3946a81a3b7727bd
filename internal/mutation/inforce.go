package main

// helpers are added to the package. The mutant in force is in the environment. It,
// or without one each, is noted in a file when it is reached.
const helpers = `package p

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

var (
	mutantInForce, _ = strconv.Atoi(os.Getenv("MUTANT"))
	mutantsReached   sync.Map
	// Open from the beginning, as a test may leave no file to be opened.
	mutantMark, _ = os.OpenFile(os.Getenv("MUTANT_REACHED"), os.O_WRONLY|os.O_APPEND, 0o600)
)

func isMutant(id int) bool {
	if id != mutantInForce {
		if mutantInForce < 0 {
			mutantReached(id)
		}
		return false
	}
	return true
}

func mutantReached(id int) {
	if _, again := mutantsReached.LoadOrStore(id, true); !again {
		fmt.Fprintln(mutantMark, id)
	}
}

type mutantInteger interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

type mutantNumber interface {
	mutantInteger | ~float32 | ~float64
}

func mutantArithmetic[T mutantNumber](id int, op string, a, b T) T {
	if isMutant(id) {
		op = map[string]string{"+": "-", "-": "+", "*": "/", "/": "*"}[op]
	}
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	}
	return a / b
}

func mutantRemainder[T mutantInteger](id int, a, b T) T {
	if isMutant(id) {
		return a * b
	}
	return a % b
}

func mutantStep[T mutantNumber](id int, x T, op string) T {
	if (op == "+") != isMutant(id) {
		return x + 1
	}
	return x - 1
}

func mutantNegative[T mutantNumber](id int, x T) T {
	if isMutant(id) {
		return x
	}
	return -x
}

func mutantConstant[T mutantNumber](id int, x T) T {
	if isMutant(id) {
		return x + 1
	}
	return x
}

func mutantNot[T ~bool](id int, x T) T {
	return x != T(isMutant(id))
}

func mutantZero[T any](id int, x T) T {
	if isMutant(id) {
		return *new(T)
	}
	return x
}
`
