import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../apimachinery/src/meta/status.ts';
import { orAbsent, orExpected, orGone, orThere } from './api-failure.ts';

const failure = (code: number, reason: string): ApiError => new ApiError({ code, reason, message: reason });
const FAILURES = {
  absent: failure(404, 'NotFound'),
  replaced: failure(409, 'Conflict'),
  there: failure(409, 'AlreadyExists'),
  forbidden: failure(403, 'Forbidden'),
  broken: new Error('connection reset'),
};

for (const [name, run, expected] of [
  ['orAbsent', orAbsent, ['absent']],
  ['orGone', orGone, ['absent', 'replaced']],
  ['orThere', orThere, ['there']],
  ['orExpected', (pending: Promise<unknown>) => orExpected(pending, (error) => error === FAILURES.broken), ['broken']],
] as const)
  test(`${name}() answers undefined for ${expected.join(' or ')}, and no other failure`, async () => {
    assert.equal(await run(Promise.resolve(1)), 1);
    for (const [failed, error] of Object.entries(FAILURES))
      if ((expected as readonly string[]).includes(failed)) assert.equal(await run(Promise.reject(error)), undefined);
      else await assert.rejects(run(Promise.reject(error)), error);
  });
