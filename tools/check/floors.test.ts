import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FloorPlan, floorViolations, importsOf, monopolyViolations } from './floors.ts';

const plan: FloorPlan = {
  floors: ['base', 'api', 'server', 'client', 'control'],
  rooms: { server: ['storage', 'endpoints'], control: ['vm', 'vmi'] },
  isolatedRooms: ['control'],
  noServerInside: ['client', 'control'],
  noNodeModules: ['api', 'server'],
  nodeModulesAllowed: ['src/server/storage/sqlite-backend.ts'],
};

const CASES: [name: string, file: string, source: string, expected: RegExp | undefined][] = [
  ['a floor below is fine', 'src/api/meta/a.ts', "import { x } from '../../base/clock/clock.ts';", undefined],
  ['upward is not', 'src/base/clock/a.ts', "import { x } from '../../api/meta/x.ts';", /imports upward/],
  [
    'upward is not, as a type either',
    'src/base/clock/a.ts',
    "import type { X } from '../../api/meta/x.ts';",
    /imports upward/,
  ],
  ['server inside', 'src/client/a.ts', "import { x } from '../server/cache/x.ts';", /reaches inside server/],
  ['node module', 'src/api/meta/a.ts', "import fs from 'node:fs';", /any JavaScript engine/],
  [
    'node module where allowed',
    'src/server/storage/sqlite-backend.ts',
    "import { Worker } from 'node:worker_threads';",
    undefined,
  ],
  ['room order', 'src/server/storage/a.ts', "import {\n  x,\n} from '../endpoints/x.ts';", /comes after it/],
  ['room order of a type', 'src/server/storage/a.ts', "import type { X } from '../endpoints/x.ts';", undefined],
  [
    'controllers do not import each other',
    'src/control/vmi/a.ts',
    "import type { X } from '../vm/x.ts';",
    /never imports another/,
  ],
  ['dynamic import', 'src/base/clock/a.ts', "const x = await import('../../api/meta/x.ts');", /imports upward/],
  ['re-export', 'src/base/clock/a.ts', "export * from '../../api/meta/x.ts';", /imports upward/],
  ['tests are free', 'src/base/clock/a.test.ts', "import { x } from '../../api/meta/x.ts';", undefined],
  ['unknown floor', 'src/attic/a.ts', "import 'ws';", /not in tools/],
];

for (const [name, file, source, expected] of CASES) {
  // S-098: Imports go downward, and the engine-neutral floors import no `node:` module; child processes, the time,
  //   flags and environment each have one place.
  test(`floorViolations(): ${name}`, () => {
    const wrong = floorViolations(importsOf(file, source), plan);
    if (expected) assert.match(wrong.join('\n'), expected);
    else assert.deepEqual(wrong, []);
  });
}

const MONOPOLIES: [file: string, source: string, expected: RegExp | undefined][] = [
  ['src/node/agent/a.ts', "import { spawn } from 'node:child_process';", /only base\/process/],
  ['src/base/process/run.ts', "import { spawn } from 'node:child_process';", undefined],
  ['src/api/meta/a.ts', 'const now = Date.now();', /take a Clock/],
  ['src/api/meta/a.ts', 'const at = new Date(ms);', undefined],
  ['src/api/meta/a.ts', '// Date.now() would be wrong here', undefined],
  ['src/node/agent/a.ts', "const path = process.env['PATH'];", /only cmd/],
  ['src/cmd/cli/a.ts', "const path = process.env['PATH'];", undefined],
];
// S-098
test('monopolyViolations() names what a place may not do', () => {
  for (const [file, source, expected] of MONOPOLIES) {
    const wrong = monopolyViolations(file, source).join();
    if (expected) assert.match(wrong, expected);
    else assert.equal(wrong, '', source);
  }
});
