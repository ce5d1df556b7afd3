/** TaintNodesByCondition: a new node takes no Pods before it has said that it is ready. */

import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { Taint } from '@coracle/apimachinery/types/types';
import type { AdmissionPlugin } from './plugin.ts';

const NOT_READY = 'node.kubernetes.io/not-ready';

export const taintNodesByCondition: AdmissionPlugin = {
  name: 'TaintNodesByCondition',
  matches: (operation, info, subresource) =>
    operation === 'CREATE' && info.resource === 'nodes' && info.group === '' && subresource === '',
  mutate({ object }) {
    const spec = isJsonObject(object!['spec']) ? object!['spec'] : {};
    object!['spec'] = spec;
    const taints = (spec['taints'] as Taint[] | undefined) ?? [];
    if (taints.some(({ key, effect }) => key === NOT_READY && effect === 'NoSchedule')) return;
    spec['taints'] = [...taints, { key: NOT_READY, effect: 'NoSchedule' }];
  },
};
