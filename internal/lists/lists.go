// Package lists has functions on lists that package slices lacks.
package lists

import "slices"

// Map returns what f returns for each item, nil for an empty list.
func Map[T, U any](list []T, f func(T) U) (all []U) {
	for _, item := range list {
		all = append(all, f(item))
	}
	return all
}

// Add appends the items that a list does not have.
func Add[T comparable](list []T, items ...T) []T {
	for _, item := range items {
		if !slices.Contains(list, item) {
			list = append(list, item)
		}
	}
	return list
}

// Filter returns the items for which keep is true, nil if there are none.
func Filter[T any](list []T, keep func(T) bool) (kept []T) {
	for _, item := range list {
		if keep(item) {
			kept = append(kept, item)
		}
	}
	return kept
}

// Find returns the first item that matches, nil if there is none.
func Find[T any](list []T, matches func(*T) bool) *T {
	for i := range list {
		if matches(&list[i]) {
			return &list[i]
		}
	}
	return nil
}
