/** A fork whose program is killed at any step of it, from the request to the end. */
// test:full: a kill at each step.
import { test } from 'node:test';
import { whyNoGuests } from '../testkit/tiny-guest.ts';
import { crashForks } from './fork-crash.ts';

// S-675
test('a fork whose program is killed at any step converges', { timeout: 900_000, skip: whyNoGuests() ?? false }, () =>
  crashForks([0, 30, 80, 150, 250, 350, 450, 600, 800, 1000, 1300, 1700, 2200, 3000]),
);
