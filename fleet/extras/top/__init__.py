"""The whole fleet on one screen. `cells` says what is shown, `app` draws it; neither decides anything."""
