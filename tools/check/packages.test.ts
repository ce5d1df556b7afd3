import assert from 'node:assert/strict';
import { test } from 'node:test';
import { circles } from './circles.ts';
import {
  circleViolations,
  importsOf,
  importViolations,
  manifestViolations,
  monopolyViolations,
  type Plan,
  planViolations,
  surfaceViolations,
} from './packages.ts';

const plan: Plan = {
  packages: {
    runtime: { dependsOn: [] },
    apiserver: { dependsOn: ['runtime'], rooms: ['storage', 'endpoints'] },
    kubevirt: { dependsOn: ['runtime'], rooms: ['rules', 'controllers'], isolatedRooms: 'controllers' },
    'kube-controllers': { dependsOn: ['runtime'], isolatedRooms: '' },
  },
  anyEngine: ['apiserver'],
  nodeModulesAllowed: ['packages/apiserver/src/storage/sqlite-backend.ts'],
  circles: [],
};

const CASES: [name: string, file: string, source: string, expected: RegExp | undefined][] = [
  ['a package before it', 'apiserver/src/storage/a.ts', "import { x } from '@coracle/runtime';", undefined],
  [
    'a package behind it',
    'runtime/src/clock/a.ts',
    "import { x } from '@coracle/apiserver';",
    /may not import apiserver/,
  ],
  ['its type', 'runtime/src/clock/a.ts', "import type { X } from '@coracle/apiserver';", /may not import apiserver/],
  [
    'an entry of it',
    'runtime/src/a.ts',
    "import type { X } from '@coracle/kubevirt/kinds/kinds';",
    /may not import kubevirt/,
  ],
  [
    'the inside of another',
    'apiserver/src/storage/a.ts',
    "import { x } from '../../../runtime/src/clock/c.ts';",
    /reaches inside/,
  ],
  ['itself by name', 'runtime/src/clock/a.ts', "import { x } from '@coracle/runtime';", /name the file/],
  ['node module', 'apiserver/src/storage/a.ts', "import fs from 'node:fs';", /any JavaScript engine/],
  [
    'node module where allowed',
    'apiserver/src/storage/sqlite-backend.ts',
    "import { W } from 'node:worker_threads';",
    undefined,
  ],
  ['room order', 'apiserver/src/storage/a.ts', "import {\n  x,\n} from '../endpoints/x.ts';", /comes after it/],
  ['room order of a type', 'apiserver/src/storage/a.ts', "import type { X } from '../endpoints/x.ts';", undefined],
  ['an unknown room', 'apiserver/src/attic/a.ts', "import { x } from '../storage/x.ts';", /room attic is not in/],
  [
    'another controller',
    'kubevirt/src/controllers/vmi/a.ts',
    "import type { X } from '../vm/x.ts';",
    /never imports another/,
  ],
  [
    'the rules of controllers',
    'kubevirt/src/controllers/vmi/a.ts',
    "import { x } from '../../rules/vm/x.ts';",
    undefined,
  ],
  [
    'another controller of a package of them',
    'kube-controllers/src/a/a.ts',
    "import { x } from '../b/x.ts';",
    /never imports another/,
  ],
  ['dynamic import', 'runtime/src/a.ts', "const x = await import('@coracle/kubevirt');", /may not import/],
  ['re-export', 'runtime/src/a.ts', "export * from '@coracle/kubevirt';", /may not import/],
  ['tests are free', 'runtime/src/a.test.ts', "import { x } from '../../apiserver/src/storage/x.ts';", undefined],
  ['an unknown package', 'attic/src/a.ts', "import 'ws';", /not in tools/],
];

for (const [name, path, source, expected] of CASES) {
  // S-098: Imports go downward, and the engine-neutral packages import no `node:` module; child processes, the time,
  //   flags and environment each have one place.
  test(`importViolations(): ${name}`, () => {
    const wrong = importViolations(importsOf(`packages/${path}`, source), plan);
    if (expected) assert.match(wrong.join('\n'), expected);
    else assert.deepEqual(wrong, []);
  });
}

test('a plan whose packages depend on later ones is refused', () => {
  assert.deepEqual(planViolations(plan), []);
  const turned = { packages: { a: { dependsOn: ['b'] }, b: { dependsOn: [] } } };
  assert.match(planViolations(turned).join(), /a may not depend on b/);
});

test('of another package only what its manifest calls public is imported', () => {
  const surface = new Set(['queue/work-queue']);
  const importing = (source: string) => surfaceViolations(importsOf('packages/gitops/src/a.ts', source), () => surface);
  assert.deepEqual(importing("import { x } from '@coracle/client/queue/work-queue';"), []);
  assert.deepEqual(importing("import { x } from '@coracle/client';"), []);
  assert.match(importing("import { x } from '@coracle/client/queue/inside';").join(), /inside of client is not public/);
});

test('a manifest names what its package imports, and of our own packages nothing else', () => {
  const imports = importsOf(
    'packages/gitops/src/a.ts',
    "import 'ws';\nimport { x } from '@coracle/client/y';\nimport 'node:fs';",
  );
  assert.deepEqual(manifestViolations('gitops', { dependencies: { ws: '8', '@coracle/client': '1' } }, imports), []);
  assert.match(
    manifestViolations('gitops', { dependencies: { '@coracle/client': '1' } }, imports).join(),
    /does not name ws/,
  );
  const idle = { dependencies: { ws: '8', '@coracle/client': '1', '@coracle/cel': '1' } };
  assert.match(manifestViolations('gitops', idle, imports).join(), /names @coracle\/cel/);
});

test('circles of files are found, whichever way they are written', () => {
  const edges = [
    ['a', 'b'],
    ['b', 'c'],
    ['c', 'a'],
    ['c', 'd'],
    ['d', 'e'],
  ].map(([file = '', target = '']) => ({ file, target }));
  assert.deepEqual(
    circles(edges).map((one) => one.sort()),
    [['a', 'b', 'c']],
  );
  const one = 'packages/runtime/src/a.ts';
  const two = 'packages/runtime/src/b.ts';
  const imports = [
    ...importsOf(one, "import type { B } from './b.ts';"),
    ...importsOf(two, "import { a } from './a.ts';"),
  ];
  assert.match(circleViolations(imports, plan).join(), /in a circle/);
  assert.deepEqual(circleViolations(imports, { circles: [[one, two]] }), []);
  assert.match(circleViolations([], { circles: [[one, two]] }).join(), /is no more/);
});

const MONOPOLIES: [file: string, source: string, expected: RegExp | undefined][] = [
  ['packages/node-agent/src/agent/a.ts', "import { spawn } from 'node:child_process';", /only runtime\/process/],
  ['packages/runtime/src/process/run.ts', "import { spawn } from 'node:child_process';", undefined],
  ['packages/apimachinery/src/meta/a.ts', 'const now = Date.now();', /take a Clock/],
  ['packages/apimachinery/src/meta/a.ts', 'const at = new Date(ms);', undefined],
  ['packages/apimachinery/src/meta/a.ts', '// Date.now() would be wrong here', undefined],
  ['packages/node-agent/src/agent/a.ts', "const path = process.env['PATH'];", /only coracle/],
  ['packages/coracle/src/cli/a.ts', "const path = process.env['PATH'];", undefined],
];
// S-098
test('monopolyViolations() names what a place may not do', () => {
  for (const [file, source, expected] of MONOPOLIES) {
    const wrong = monopolyViolations(file, source).join();
    if (expected) assert.match(wrong, expected);
    else assert.equal(wrong, '', source);
  }
});
