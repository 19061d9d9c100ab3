# A static binary in an empty image. Build the binary first: make static.
FROM scratch
COPY bin/tallystick /tallystick
ENTRYPOINT ["/tallystick"]
