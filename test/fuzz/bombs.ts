/** Bodies that are bad for whoever reads them: what the fuzz sends one by one, with its eye on the event loop. */
import { answerBombs } from './answer-bombs.ts';
import type { Body } from './body.ts';
import { definitionBombs } from './definition-bombs.ts';
import { jsonBombs } from './json-bombs.ts';
import { listBombs } from './list-bombs.ts';
import { objectBombs } from './object-bombs.ts';
import { patchBombs } from './patch-bombs.ts';
import { protobufBombs } from './protobuf-bombs.ts';
import { yamlBombs } from './yaml-bombs.ts';

/** At most 3 MiB each. */
export const bombs = (): Body[] => [
  ...jsonBombs(),
  ...yamlBombs(),
  ...patchBombs(),
  ...objectBombs(),
  ...listBombs(),
  ...protobufBombs(),
  ...answerBombs(),
  ...definitionBombs(),
];
