import { test } from 'node:test';
import { walkProtection } from '../testkit/protection-walk.ts';

test('whatever is made, protected, referred to and deleted at once: nothing goes that a protected machine stands on, nothing hangs', () =>
  walkProtection({ runs: 8, steps: 24 }));
