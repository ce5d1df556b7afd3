/** RBAC rules in the notation in which tables of rights are written here, the default roles of the server among them. */
import type { PolicyRule } from './types.ts';

const words = (text: string): string[] => text.split(/\s+/);

/**
 * Reads rules written as `verbs : groups : resources [: names]`, words apart by blanks and the core group as `core`, or as
 * `verbs : paths`. Rules that are objects already stay as they are.
 */
export const policyRules = (...rules: readonly (string | PolicyRule)[]): PolicyRule[] =>
  rules.map((rule) => {
    if (typeof rule !== 'string') return rule;
    const [verbs = '', groups = '', resources, names] = rule.split(/\s+:\s+/);
    if (resources === undefined) return { nonResourceURLs: words(groups), verbs: words(verbs) };
    return {
      apiGroups: words(groups).map((group) => (group === 'core' ? '' : group)),
      resources: words(resources),
      ...(names !== undefined && { resourceNames: words(names) }),
      verbs: words(verbs),
    };
  });
