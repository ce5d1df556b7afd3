/** Kinds of authorizers as upstream lists them. ABAC is known and not served. */
export const AUTHORIZATION_MODES = ['ABAC', 'AlwaysAllow', 'AlwaysDeny', 'Node', 'RBAC', 'Webhook'] as const;
