import assert from 'node:assert/strict';
import { test } from 'node:test';
import { oldWords } from './words.ts';

const ROWS: readonly (readonly [text: string, words: readonly string[]])[] = [
  ['a wish of its user', ['1: wish (say: request, preference)']],
  ['Strangers get 403', ['1: Strangers (say: unauthenticated client, unmanaged Pod)']],
  ['const isStranger = true;', ['1: Stranger (say: unauthenticated client, unmanaged Pod)']],
  ['an API server\nof another make', ['2: of another make (say: external)']],
  ['mended, and sifted', ['1: sifted (say: filter)', '1: mended (say: repair, correct, remedy)']],
  [
    'told of the newJudgement',
    ['1: told (say: reported, notified, requested, known)', '1: Judgement (say: validate, decide, decision)'],
  ],
  [
    'the verdictOf it, newVerdict',
    ['1: verdict (say: decision, outcome, result)', '1: Verdict (say: decision, outcome, result)'],
  ],
  ['recommend, year, clear, heard, search, wishbone, shift, amend, earlier', []],
];

for (const [text, words] of ROWS)
  test(`oldWords(): ${JSON.stringify(text)}`, () => {
    assert.deepEqual(oldWords(text), words);
  });
