import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SyncFailure } from '../status/sync-error.ts';
import { checkKustomization } from './check-kustomization.ts';

type Tree = Readonly<Record<string, string>>;
const check = (tree: Tree, dir = 'app'): string[] =>
  checkKustomization(
    Object.entries(tree).map(([path, text]) => ({ path, bytes: Buffer.from(text) })),
    dir,
  ).sort();

test('checkKustomization() follows what is in the source, and gives its directories', () => {
  const tree = {
    'app/kustomization.yaml': `resources: [a.yaml, ../base, ./more/]
components: ['../parts/one']
transformers:
- |-
  apiVersion: builtin
  kind: PrefixTransformer
  metadata: {name: x}
  prefix: p-
- labels.yaml
configMapGenerator:
- {name: c, files: [key=f.txt], literals: ['url=https://example.org/']}
patches:
- {path: p.yaml}
- {patch: "- {op: add, path: /metadata/annotations/u, value: 'https://example.org'}"}
images: [{name: x, newName: registry.example.org/x}]
`,
    'app/a.yaml': 'see: https://example.org',
    'app/labels.yaml': 'kind: LabelTransformer',
    'app/more/Kustomization': 'resources: [../../base]',
    'base/kustomization.yml': '{resources: [x.yaml]}',
    'base/x.yaml': '',
    'parts/one/kustomization.yaml': '',
    'unused/kustomization.yaml': 'resources: [https://example.org/x.yaml]',
  };
  assert.deepEqual(check(tree), ['app', 'app/more', 'base', 'parts/one']);
  assert.deepEqual(check({ 'kustomization.yaml': 'resources: [a.yaml]', 'a.yaml': '' }, ''), ['']);
});

const REFUSED: readonly [what: string, kustomization: string, text: RegExp, more?: Tree][] = [
  ['a remote base', 'resources: ["https://example.org/base?ref=v1"]', /nothing is fetched/],
  ['a remote base of a host', 'resources: [github.com/example/base]', /neither a file of the source/],
  ['a remote base by ssh', 'resources: ["git@example.org:base"]', /neither a file of the source/],
  [
    'a remote base that looks like a directory of the source',
    'resources: ["https://d"]',
    /nothing is fetched/,
    {
      'app/https:/d/kustomization.yaml': '',
    },
  ],
  ['a remote file in a directory of that name', 'patches: [{path: "https://d/p.yaml"}]', /nothing is fetched/],
  ['the same in other letters', 'patches: [{Path: "HTTPS://d/p.yaml"}]', /nothing is fetched/],
  ['a remote file of a generator', 'configMapGenerator: [{name: c, files: ["k=http://d/x"]}]', /nothing is fetched/],
  ['remote values', 'secretGenerator: [{name: c, envs: ["http://d/x"]}]', /nothing is fetched/],
  ['a remote schema', 'openapi: {path: "http://d/x"}', /nothing is fetched/],
  ['a remote definition', 'crds: ["http://d/x"]', /nothing is fetched/],
  ['a remote component', 'components: ["http://d/x"]', /nothing is fetched/],
  ['a path that leads out', 'resources: [../../etc]', /leads out of the source/],
  ['an absolute path', 'bases: [/etc]', /leads out of the source/],
  ['a field in other letters', 'Resources: ["https://d"]', /"Resources" that kustomize does not have/],
  ['a field in letters that Go takes for others', 're\u017fources: ["https://d"]', /kustomize does not have/],
  ['fields by reference', 'metadata: &x {resources: ["https://d"]}\n<<: *x', /nothing is fetched/],
  ['charts', 'helmCharts: [{name: x, repo: "https://d"}]', /use sourceType helm/],
  ['a field twice', 'resources: []\nresources: ["https://d"]', /is there twice/],
  ['two documents', 'resources: []\n---\nresources: ["https://d"]', /cannot be read/],
  [
    'a bomb of references',
    `a: &a [x]\n${'bcdefghij'.replace(/./g, (c) => `${c}: &${c} [${`*${String.fromCharCode(c.charCodeAt(0) - 1)},`.repeat(9)}]\n`)}`,
    /cannot be read/,
  ],
  ['no text', 'resources: [{a: b}]', /is not a string/],
  ['no map', '[]', /not a kustomization/],
  [
    'a plugin that fetches',
    'transformers: [t.yaml]',
    /nothing is fetched/,
    {
      'app/t.yaml': 'kind: LabelTransformer\n---\nkind: PatchTransformer\npath: https://d/p.yaml\n',
    },
  ],
  ['a plugin within', 'generators:\n- |-\n  kind: ConfigMapGenerator\n  files: [https://d/x]\n', /nothing is fetched/],
  [
    'a plugin of a kustomization',
    'validators: [../plugins]',
    /nothing is fetched/,
    {
      'plugins/kustomization.yaml': 'resources: [v.yaml]',
      'plugins/v.yaml': 'path: https://d/p.yaml',
    },
  ],
];
for (const [what, kustomization, text, more = {}] of REFUSED) {
  // S-923: A kustomization fetches nothing, runs nothing, and reads no file outside of its source; one that takes too
  //   much memory or time is ended.
  test(`checkKustomization() refuses ${what}`, () => {
    assert.throws(
      () => check({ 'app/kustomization.yaml': kustomization, ...more }),
      (error) => error instanceof SyncFailure && error.errors[0]?.code === '1068' && text.test(error.message),
    );
  });
}

test('checkKustomization() looks at a directory again that configures plugins as well', () => {
  const tree = {
    'app/kustomization.yaml': 'resources: [../both]\ngenerators: [../both]',
    'both/kustomization.yaml': 'resources: [x.yaml]',
    'both/x.yaml': 'path: https://d/p.yaml',
  };
  assert.throws(() => check(tree), /nothing is fetched/);
});
