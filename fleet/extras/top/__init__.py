"""The whole fleet on one screen: `cells` says what is shown, `widgets` draw it, `app` looks and acts."""
