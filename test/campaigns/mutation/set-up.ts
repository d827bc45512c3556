/**
 * Properties under mutation: the same cases in every run, so that the same mutants survive, and no search for a smaller
 * counterexample, which takes minutes and which is not read.
 */
import fc from 'fast-check'

fc.configureGlobal({ seed: 1, endOnFailure: true })
