/** The flags of `coracle up`, and those of them that other commands have too. */
import { AUTHENTICATION_FLAGS, AUTHORIZATION_FLAGS, OIDC_FLAGS, TOKEN_WEBHOOK_FLAGS } from './access-flags.ts';
import { AUDIT_FLAGS } from './audit-flags.ts';
import { BYTE_LIMIT_FLAGS } from './byte-limit-flags.ts';
import { DATA_DIR, JSON_OUT, under } from './cluster-flags.ts';
import { type Command, flagTable, valueFlag } from './command.ts';

/** Of agents: what guests may have of the host. */
export const GUEST_FLAGS = flagTable({
  'host-disk DIR...': 'directory that hostDisk volumes may be in; may be given again (needs the HostDisk feature gate)',
  'allow-host-ports': 'guests may have ports of this host under their own number (annotation coracle.dev/host-ports)',
});
export const CONTROLLERS = valueFlag(
  'LIST',
  "controllers to run: '*' = all, 'name' = this one, '-name' = not this one, '' = none (default: *)",
  { mayBeEmpty: true },
);
export const CLUSTER_NAME = valueFlag(
  'NAME',
  'name that cluster selectors of RootSyncs and RepoSyncs go by (default: the cluster has none)',
);

/** Port of the API where none is asked for. */
export const DEFAULT_PORT = 16443;

export const UP_FLAGS: Command['flags'] = {
  'data-dir': DATA_DIR,
  ...flagTable({
    'port N': `API port; 0 picks a free one (default: ${DEFAULT_PORT})`,
    'nodes N': 'node agents to run in this process (default: 1)',
    detach: 'return as soon as the API is ready',
    'no-merge-kubeconfig': "leave the user's kubeconfig alone",
  }),
  json: JSON_OUT,
  controllers: CONTROLLERS,
  'cluster-name': CLUSTER_NAME,
  ...under('Guests', GUEST_FLAGS),
  ...under(
    'Network',
    flagTable({
      'bind-address IP':
        'address of this host to serve on, for nodes and users on other machines; 0.0.0.0 or :: = all (default: 127.0.0.1)',
      'upload-port N': 'port that images are uploaded to (virtctl image-upload); 0 picks a free one (default: 0)',
      'service-cluster-ip-range CIDR': 'IPv4 range that Services get cluster IPs from (default: 10.96.0.0/16)',
      'cors-allowed-origins REGEXP...': 'origins whose web pages may call the API; may be given again (default: none)',
    }),
  ),
  ...under('Authentication', {
    'token-auth-file': valueFlag('FILE', 'users by token, lines of token,user,uid[,"group1,group2"]'),
    ...OIDC_FLAGS,
    ...TOKEN_WEBHOOK_FLAGS,
    ...AUTHENTICATION_FLAGS,
  }),
  ...under('Authorization', AUTHORIZATION_FLAGS),
  ...under('Audit', AUDIT_FLAGS),
  ...under('Limits', BYTE_LIMIT_FLAGS),
};
