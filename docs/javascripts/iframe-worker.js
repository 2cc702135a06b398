// The theme's polyfill for a search without a server is left out: it would come from another host.
