/** How a component of the control plane is, as ComponentStatus tells it; `Unknown` when nobody here can tell. */
export interface ComponentHealth {
  readonly name: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly message: string;
}
