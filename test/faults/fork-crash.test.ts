/** The usual case of `fork-crash.ts`; `fork-crash-steps.test.ts` has the others. */
import { test } from 'node:test';
import { whyNoGuests } from '../testkit/tiny-guest.ts';
import { crashForks } from './fork-crash.ts';

// S-675: A fork whose program is killed at any moment converges: the source runs, the forks run, no state is left.
test('a fork whose program is killed while memory is saved converges', { skip: whyNoGuests() ?? false }, () =>
  crashForks([250]),
);
