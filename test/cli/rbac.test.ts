/** `coracle rbac`: what is printed, and for whom. That it suffices is proved in `test/node/foreign-cluster.test.ts`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { chooseComponents } from '../../packages/coracle/src/compose/components.ts';
import { NODE_AGENT_RULES } from '../../packages/node-agent/src/agent/rbac.ts';
import { openWorkspace } from './workspace.ts';

interface Printed {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly unknown[];
}

// S-240
test('coracle rbac prints the tables the embedded server uses, and no more than was asked for', async (t) => {
  const at = openWorkspace(t);
  const print = async (...argv: string[]): Promise<Printed[]> => {
    const outcome = await at.run(['rbac', ...argv]);
    assert.equal(outcome.code, 0, outcome.stderr);
    return parseAllDocuments(outcome.stdout).map((document) => {
      assert.deepEqual('errors' in document ? document.errors : [], []);
      return document.toJS() as Printed;
    });
  };
  const names = (printed: readonly Printed[], kind: string) =>
    printed.filter((one) => one.kind === kind).map(({ metadata }) => metadata.name);

  const both = await print();
  const chosen = chooseComponents('*', { external: true });
  assert.deepEqual(names(both, 'ServiceAccount'), [
    ...chosen.map(({ account }) => account),
    'coracle-controllers',
    'coracle-agent',
  ]);
  assert.deepEqual(names(both, 'Namespace'), ['kubevirt', 'config-management-system'], 'once');
  for (const { account, rules } of chosen) {
    const role = both.find(
      ({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === account.replace(/^coracle-/, 'coracle:'),
    );
    assert.deepEqual(role?.rules, JSON.parse(JSON.stringify(rules)), account);
  }
  const agent = both.find(({ metadata }) => metadata.name === 'coracle:node-agent');
  assert.deepEqual(agent?.rules, NODE_AGENT_RULES);
  const given = names(both, 'ClusterRole').filter((name) => name !== 'coracle:unprotect');
  assert.deepEqual(names(both, 'ClusterRoleBinding').sort(), given.sort(), 'that one is for administrators to give');
  for (const kind of ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'])
    assert.ok(names(both, kind).includes('coracle-unprotect'), kind);

  assert.deepEqual(names(await print('node'), 'ServiceAccount'), ['coracle-agent']);
  assert.deepEqual(names(await print('controllers', '--controllers', 'vm'), 'ServiceAccount'), [
    'coracle-vm',
    'coracle-controllers',
  ]);

  for (const [argv, message] of [
    [['what'], /^error: usage: coracle rbac \[node \| controllers\]/],
    [['node', '--controllers', 'vm'], /^error: --controllers is for coracle rbac controllers/],
    [['--controllers', 'none-such'], /^error: --controllers: "none-such" is not a controller/],
  ] as const) {
    const outcome = await at.run(['rbac', ...argv]);
    assert.deepEqual([outcome.code, outcome.stdout], [1, ''], outcome.stderr);
    assert.match(outcome.stderr, message);
  }
});
