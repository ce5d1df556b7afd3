import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { policyRules } from './policy-rules.ts';

describe('policyRules()', () => {
  it('reads verbs, groups, resources and names, and the core group by its word', () => {
    assert.deepEqual(policyRules('get list : core apps : pods deployments', 'update : apps : deployments : one two'), [
      { apiGroups: ['', 'apps'], resources: ['pods', 'deployments'], verbs: ['get', 'list'] },
      { apiGroups: ['apps'], resources: ['deployments'], resourceNames: ['one', 'two'], verbs: ['update'] },
    ]);
  });

  it('reads paths where no resources are named', () => {
    assert.deepEqual(policyRules('get : /api /apis/*'), [{ nonResourceURLs: ['/api', '/apis/*'], verbs: ['get'] }]);
  });

  it('reads a rule of several lines, and leaves objects as they are', () => {
    const rule = { apiGroups: [''], resources: ['nodes'], verbs: ['get'] };
    assert.deepEqual(policyRules('get\n : core :\n  pods', rule), [
      { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
      rule,
    ]);
  });
});
