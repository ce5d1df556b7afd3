import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { filterGraph, type ObjectGraphOptions, readGraphOptions } from './filter-graph.ts';
import { graphNode, type ObjectGraphNode } from './graph-node.ts';

const at = (name: string) => ({ namespace: 'ns', name });
const GRAPH = graphNode('VirtualMachine', at('vm'), {
  children: [
    graphNode('VirtualMachineInstance', at('vm'), { children: [graphNode('Pod', at('pod'))] }),
    graphNode('VirtualMachineInstancetype', at('u1'), { optional: true }),
    graphNode('ControllerRevision', at('revision')),
    graphNode('Secret', at('secret')),
    graphNode('DataVolume', at('root'), {
      // A richer graph than upstream's: what is below a node that goes, goes with it.
      children: [graphNode('PersistentVolumeClaim', at('root'), { children: [graphNode('Secret', at('luks'))] })],
    }),
    graphNode('NetworkAttachmentDefinition', at('blue'), { optional: true }),
  ],
});

const names = ({ objectReference: { name }, children = [] }: ObjectGraphNode): string =>
  name + (children.length > 0 ? `(${children.map(names).join(' ')})` : '');
const ofType = (type: string): ObjectGraphOptions => ({
  labelSelector: { matchLabels: { 'kubevirt.io/dependency-type': type } },
});
const ALL = 'vm(vm(pod) u1 revision secret root(root(luks)) blue)';

describe('filterGraph', () => {
  const rows: [what: string, options: ObjectGraphOptions, expected: string][] = [
    ['no options', {}, ALL],
    ['optional ones asked for', { includeOptionalNodes: true }, ALL],
    [
      'optional ones left out, not their revisions',
      { includeOptionalNodes: false },
      'vm(vm(pod) revision secret root(root(luks)))',
    ],
    ['storage', ofType('storage'), 'vm(root(root))'],
    ['compute', ofType('compute'), 'vm(vm(pod))'],
    ['config: nothing below a node of another type', ofType('config'), 'vm(u1 revision secret)'],
    ['network', ofType('network'), 'vm(blue)'],
    ['network without optional ones', { ...ofType('network'), includeOptionalNodes: false }, 'vm'],
    ['a label that no node has', { labelSelector: { matchLabels: { app: 'x' } } }, 'vm'],
    ['an empty selector', { labelSelector: {} }, ALL],
    [
      'an expression',
      {
        labelSelector: {
          matchExpressions: [{ key: 'kubevirt.io/dependency-type', operator: 'NotIn', values: ['config', 'compute'] }],
        },
      },
      'vm(root(root) blue)',
    ],
    [
      'a selector that cannot be understood keeps nodes',
      { includeOptionalNodes: false, labelSelector: { matchExpressions: [{ key: 'a', operator: 'Like' }] } },
      'vm(vm(pod) revision secret root(root(luks)))',
    ],
  ];
  for (const [what, options, expected] of rows)
    it(what, () => assert.equal(names(filterGraph(GRAPH, options)), expected));
});

describe('filterGraph where what is below stays', () => {
  const rows: [what: string, options: ObjectGraphOptions, expected: string][] = [
    ['no options', {}, ALL],
    ['config: also from below nodes of another type', ofType('config'), 'vm(u1 revision secret luks)'],
    ['storage', ofType('storage'), 'vm(root(root))'],
    ['nothing optional', { includeOptionalNodes: false }, 'vm(vm(pod) revision secret root(root(luks)))'],
  ];
  for (const [what, options, expected] of rows)
    it(what, () => assert.equal(names(filterGraph(GRAPH, options, { below: 'stay' })), expected));
});

describe('readGraphOptions', () => {
  const rows: [what: string, value: unknown, expected: ObjectGraphOptions | RegExp][] = [
    ['nothing', null, {}],
    ['what a Go client sends', { includeOptionalNodes: false, labelSelector: null }, { includeOptionalNodes: false }],
    ['unknown members', { kind: 'ObjectGraphOptions', more: 1 }, {}],
    ['a list', [], /not an object/],
    ['text', 'storage', /not an object/],
    ['a switch that is text', { includeOptionalNodes: 'no' }, /includeOptionalNodes is not a boolean/],
    ['a selector that is text', { labelSelector: 'a=b' }, /labelSelector is not an object/],
    ['a label that is a number', { labelSelector: { matchLabels: { a: 1 } } }, /matchLabels\[a\] is not a string/],
    ['expressions that are no list', { labelSelector: { matchExpressions: {} } }, /matchExpressions is not a list/],
    ['values that are no list', { labelSelector: { matchExpressions: [{ values: 'a' }] } }, /values/],
  ];
  for (const [what, value, expected] of rows)
    it(what, () => {
      if (expected instanceof RegExp) assert.throws(() => readGraphOptions(value), expected);
      else assert.deepEqual(readGraphOptions(value), expected);
    });
});
