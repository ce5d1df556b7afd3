import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { StoredObject } from '../../cache/object-store.ts';
import type { AdmissionAttributes } from '../plugin.ts';
import { compileSelectors, matchesSelectors } from './selectors.ts';

/** A store whose one namespace is `ns`, labelled a=b. */
const store = {
  peek: ({ name }: { name: string }) =>
    name === 'ns' ? partly<StoredObject>({ object: { metadata: { labels: { a: 'b' } } } }) : undefined,
};

const write = (more: object): AdmissionAttributes =>
  ({
    operation: 'CREATE',
    requestVerb: 'create',
    info: { group: '', resource: 'configmaps', namespaced: true },
    subresource: '',
    namespace: 'ns',
    name: 'n',
    object: { metadata: { name: 'n' } },
    oldObject: undefined,
    ...more,
  }) as unknown as AdmissionAttributes;

const AB = { matchLabels: { a: 'b' } };
const labelled = { metadata: { labels: { a: 'b' } } };
const namespaces = { group: '', resource: 'namespaces', namespaced: false };
const nodes = { group: '', resource: 'nodes', namespaced: false };

test('matchesSelectors() looks at either object, and at the namespace that counts', () => {
  const cases: [string, object, object, boolean][] = [
    ['nothing asked', {}, {}, true],
    ['namespace', { namespaceSelector: AB }, {}, true],
    ['empty selector, unknown namespace', { namespaceSelector: {} }, { namespace: 'gone' }, true],
    ['cluster scope is never exempt', { namespaceSelector: { matchLabels: { x: 'y' } } }, { info: nodes }, true],
    ['a new namespace by its own labels', { namespaceSelector: AB }, { info: namespaces, object: labelled }, true],
    [
      'a deleted one by the stored ones',
      { namespaceSelector: AB },
      { info: namespaces, operation: 'DELETE', name: 'ns', object: undefined },
      true,
    ],
    ['object', { objectSelector: AB }, { object: labelled }, true],
    ['old object', { objectSelector: AB }, { oldObject: labelled }, true],
    ['neither', { objectSelector: AB }, {}, false],
    ['no metadata', { objectSelector: AB }, { object: {} }, false],
    [
      'no metadata, negative selector',
      { objectSelector: { matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] } },
      { object: {} },
      false,
    ],
  ];
  for (const [label, selectors, more, matches] of cases) {
    assert.equal(matchesSelectors(compileSelectors(selectors), write(more), store), matches, label);
  }
});

test('matchesSelectors() throws for a namespace that is not there and a selector that is none', () => {
  const asked = compileSelectors({ namespaceSelector: AB });
  assert.throws(() => matchesSelectors(asked, write({ namespace: 'gone' }), store), /namespaces "gone" not found/);
  const broken = compileSelectors({ objectSelector: { matchExpressions: [{ key: 'a', operator: 'Nope' }] } });
  assert.throws(() => matchesSelectors(broken, write({}), store), /"Nope" is not a valid label selector operator/);
});
