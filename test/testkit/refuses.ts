import assert from 'node:assert/strict';

/** Asserts that `read` throws, with exactly this message or one that matches. */
export function refuses(read: () => unknown, message: string | RegExp): void {
  assert.throws(read, (error: Error) => {
    if (typeof message === 'string') assert.equal(error.message, message);
    else assert.match(error.message, message);
    return true;
  });
}
