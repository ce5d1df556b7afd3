import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerProblem } from './answer-problem.ts';

const TEXT = 'text/plain; charset=utf-8';
const CASES: readonly (readonly [status: number, type: string, body: string, expected: string])[] = [
  [404, TEXT, 'gone', 'the server could not find the requested resource'],
  [403, TEXT, ' not you\n', 'not you'],
  [403, 'application/json', 'not you', 'unknown'],
  [500, TEXT, 'ka"boom', 'an error on the server ("ka\\"boom") has prevented the request from succeeding'],
  [500, '', '', 'an error on the server ("unknown") has prevented the request from succeeding'],
  [502, 'application/json', '{}', 'an error on the server ("unknown") has prevented the request from succeeding'],
  [406, TEXT, '', 'the server was unable to respond with a content type that the client supports'],
  [302, TEXT, 'over there', 'the server responded with the status code 302 but did not return more information'],
  [500, 'application/json', '{"kind":"Status","message":"own words"}', 'own words'],
];
for (const [status, type, body, expected] of CASES) {
  test(`answerProblem() says of a ${status} with ${JSON.stringify(body)}, ${type || 'of no type'}: ${expected}`, () => {
    const headers: Record<string, string> = type === '' ? {} : { 'content-type': type };
    assert.equal(answerProblem({ status, headers }, new TextEncoder().encode(body)), expected);
  });
}
