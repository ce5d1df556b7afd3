// test:full: random steps for minutes.
import { test } from 'node:test';
import { walkProtection } from '../testkit/protection-walk.ts';

// S-712
test('long walks: nothing goes that a protected machine stands on, nothing hangs', { timeout: 900_000 }, () =>
  walkProtection({ runs: 60, steps: 60 }),
);
