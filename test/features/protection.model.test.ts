import { test } from 'node:test';
import { walkProtection } from '../testkit/protection-walk.ts';

// S-712: Whatever is made, protected, referred to, deleted, snapshotted and restored at once, collections and
//   namespaces among it: nothing goes that a protected machine stands on, nothing hangs in Terminating, protected
//   machines can be patched, and unprotected ones that are deleted end gone with what they own.
test('whatever is made, protected, referred to and deleted at once: nothing goes that a protected machine stands on, nothing hangs', () =>
  walkProtection({ runs: 8, steps: 24 }));
